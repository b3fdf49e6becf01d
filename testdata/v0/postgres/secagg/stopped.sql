--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: sotto; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA sotto;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: arm; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.arm (
    experiment bigint NOT NULL,
    arm bigint NOT NULL,
    head bigint NOT NULL,
    issued bigint NOT NULL,
    asked bigint NOT NULL,
    gone boolean NOT NULL,
    runs bytea NOT NULL
);


--
-- Name: assignment; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.assignment (
    block bigint NOT NULL,
    experiment bigint NOT NULL,
    units bytea NOT NULL
);


--
-- Name: assignment_block_seq; Type: SEQUENCE; Schema: sotto; Owner: -
--

ALTER TABLE sotto.assignment ALTER COLUMN block ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sotto.assignment_block_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: audit; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.audit (
    line bigint NOT NULL,
    text bytea NOT NULL
);


--
-- Name: event; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.event (
    experiment bigint NOT NULL,
    start bigint NOT NULL,
    data bytea NOT NULL
);


--
-- Name: experiment; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.experiment (
    id bigint NOT NULL,
    name text NOT NULL,
    data bytea NOT NULL,
    plan bytea
);


--
-- Name: key; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.key (
    id bigint NOT NULL,
    name text NOT NULL,
    data bytea NOT NULL
);


--
-- Name: lease; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.lease (
    "only" bigint NOT NULL,
    application bigint NOT NULL,
    version bigint NOT NULL,
    address text NOT NULL,
    backend bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    origin text NOT NULL,
    losses bigint NOT NULL,
    CONSTRAINT lease_only_check CHECK (("only" = 1))
);


--
-- Name: redeemed; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.redeemed (
    experiment bigint NOT NULL,
    arm bigint NOT NULL,
    start bigint NOT NULL,
    part bigint NOT NULL,
    numbers bytea NOT NULL
);


--
-- Name: release; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.release (
    experiment bigint NOT NULL,
    batch bigint NOT NULL,
    line bytea NOT NULL
);


--
-- Name: report; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.report (
    experiment bigint NOT NULL,
    arm bigint NOT NULL,
    number bigint NOT NULL,
    data bytea NOT NULL
);


--
-- Name: segment; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.segment (
    experiment bigint NOT NULL,
    arm bigint NOT NULL,
    start bigint NOT NULL,
    stop bigint NOT NULL,
    cut bigint NOT NULL,
    settles bigint NOT NULL,
    sum bigint NOT NULL,
    more bytea NOT NULL
);


--
-- Name: traffic; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.traffic (
    experiment bigint NOT NULL,
    hour bigint NOT NULL,
    decisions bytea NOT NULL
);


--
-- Name: writer; Type: TABLE; Schema: sotto; Owner: -
--

CREATE TABLE sotto.writer (
    "only" bigint NOT NULL,
    term bigint NOT NULL,
    holder text NOT NULL,
    commits bigint NOT NULL,
    now bigint NOT NULL,
    secret bytea NOT NULL,
    CONSTRAINT writer_only_check CHECK (("only" = 1))
);


--
-- Data for Name: arm; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.arm (experiment, arm, head, issued, asked, gone, runs) FROM stdin;
1	0	8	71	4	f	\\x0000000000000000edaa96d0b2781dd30acb3ec7d7b18efa
1	1	8	30	0	f	\\x0000000000000000edaa96d0b2781dd30acb3ec7d7b18efa
\.


--
-- Data for Name: assignment; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.assignment (block, experiment, units) FROM stdin;
\.


--
-- Data for Name: audit; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.audit (line, text) FROM stdin;
1	\\x7b2274696d65223a22323030312d30392d30395430313a34363a34305a222c226279223a227468652070726f6772616d222c22646964223a22637265617465222c226578706572696d656e74223a2273686f70227d0a
2	\\x7b2274696d65223a22323030312d30392d30395430313a34363a34305a222c226279223a227468652070726f6772616d222c22646964223a227374617274222c226578706572696d656e74223a2273686f70227d0a
3	\\x7b2274696d65223a22323030312d30392d30395430333a31303a30385a222c226279223a227468652070726f6772616d222c22646964223a2273746f70222c226578706572696d656e74223a2273686f70222c2277697468223a22626c7565227d0a
\.


--
-- Data for Name: event; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.event (experiment, start, data) FROM stdin;
\.


--
-- Data for Name: experiment; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.experiment (id, name, data, plan) FROM stdin;
1	shop	\\x7b226465636c61726174696f6e223a7b226e616d65223a2273686f70222c2261726d73223a5b7b226e616d65223a22726564222c2276616c7565223a6e756c6c7d2c7b226e616d65223a22626c7565222c2276616c7565223a6e756c6c7d5d2c22706f6c696379223a7b22706f6c696379223a2264702d6b6c7563622d6a222c226669727374223a387d2c22627564676574223a7b22657073696c6f6e223a317d2c22756e6974223a7b226f66223a227669736974227d2c22726577617264223a7b2272616e6765223a5b302c315d2c2264656661756c74223a302e32357d2c2277696e646f77223a22316d3073222c22666c6f6f72223a302c22737469636b79223a66616c73652c227075626c6963223a66616c73652c227472757374223a22736563616767222c227265706f72745f6166746572223a22333073222c22636f686f7274223a7b227573657273223a332c22636f7272757074223a302e30352c2276616e697368223a302e332c226576657279223a223168306d3073222c2277616974223a2231306d3073222c227472696573223a322c226f7468657277697365223a2264656661756c74227d7d2c227374617465223a2273746f70706564222c2263726561746564223a313030303030303030303030302c226b656570223a312c22656e646564223a313030303030353030383030302c22776879223a226f70657261746f72222c22636f686f727473223a5b7b2261726d223a312c227374617274223a302c22656e64223a382c2261736b6564223a747275652c22646f6e65223a747275652c227265706f727473223a382c2273756d223a343139343330347d2c7b2261726d223a302c227374617274223a302c22656e64223a382c2261736b6564223a747275652c22646f6e65223a747275652c227265706f727473223a382c2273756d223a343139343330347d5d2c226b6579223a5b38342c3230352c3233332c3135322c3231362c3234302c3131362c31322c38332c3135352c3233372c3232302c3131302c3138392c3231322c3231335d2c22636f696e73223a5b3137302c33332c3234372c35372c3138362c37322c3137332c36352c36392c3231332c3232332c3134372c3138372c3137352c3134382c3138345d7d	\\x7b22746970223a2231336239346234353137303332363039356235663836653366653266623531613532633865343539356138353062373530343832626331313862376264333533227d
\.


--
-- Data for Name: key; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.key (id, name, data) FROM stdin;
\.


--
-- Data for Name: lease; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.lease ("only", application, version, address, backend, since, origin, losses) FROM stdin;
1	1936684148	5		3944	2026-11-26 15:04:57.965089+00	7712496320617876991/1/16687	0
\.


--
-- Data for Name: redeemed; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.redeemed (experiment, arm, start, part, numbers) FROM stdin;
\.


--
-- Data for Name: release; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.release (experiment, batch, line) FROM stdin;
1	0	\\x7b226174223a22323030312d30392d30395430313a34363a34302e3030305a222c226c697665223a312c2270726f6772616d223a2228646576656c29222c226465636c61726174696f6e223a7b226e616d65223a2273686f70222c2261726d73223a5b7b226e616d65223a22726564222c2276616c7565223a6e756c6c7d2c7b226e616d65223a22626c7565222c2276616c7565223a6e756c6c7d5d2c22706f6c696379223a7b22706f6c696379223a2264702d6b6c7563622d6a222c226669727374223a387d2c22627564676574223a7b22657073696c6f6e223a317d2c22756e6974223a7b226f66223a227669736974227d2c22726577617264223a7b2272616e6765223a5b302c315d2c2264656661756c74223a302e32357d2c2277696e646f77223a22316d3073222c22666c6f6f72223a302c22737469636b79223a66616c73652c227075626c6963223a66616c73652c227472757374223a22736563616767222c227265706f72745f6166746572223a22333073222c22636f686f7274223a7b227573657273223a332c22636f7272757074223a302e30352c2276616e697368223a302e332c226576657279223a223168306d3073222c2277616974223a2231306d3073222c227472696573223a322c226f7468657277697365223a2264656661756c74227d7d2c22627564676574223a7b22657073696c6f6e223a317d2c22636f696e73223a2231613832633565633364363934316566663562373133363633623531666332626362333038303638643934353066656130343534336663376232353933656635227d0a
1	1	\\x7b226166746572223a2265333961306335663261303337373832396333636562646163666561626335633536613862356463646131633662323762613362656339663463366434616231222c226174223a22323030312d30392d30395430333a31303a30302e3030305a222c22636f686f7274223a7b2261726d223a312c227374617274223a302c22656e64223a382c2261736b6564223a387d7d0a
1	2	\\x7b226166746572223a2266313963336634393034626335353839346562623330396131356534363964376530303663623064333837633636396561303237363532323664326665356232222c226174223a22323030312d30392d30395430333a31303a30302e3030305a222c22636f686f7274223a7b2261726d223a302c227374617274223a302c22656e64223a382c2261736b6564223a387d7d0a
1	3	\\x7b226166746572223a2233393635333265396466353835383433373532616565346336666663363733373537363366636365356565323132333333643038653535373033333366646464222c226174223a22323030312d30392d30395430333a31303a30322e3030305a222c22706c617973223a5b7b2261726d223a302c22726f756e6473223a382c2272656c65617365223a747275657d2c7b2261726d223a312c22726f756e6473223a382c2272656c65617365223a747275657d5d2c2272656c65617365223a7b22736c6f7473223a5b302c315d2c226d656368616e69736d223a7b226d656368616e69736d223a2261676772656761746564222c227472757374223a22736563616767222c226e6f697365223a22706f6c7961222c2267223a313034383537362c227573657273223a332c22696e7669746564223a382c226d6f64756c7573223a3239313834373434332c22746175223a3134313732393431372c226e756d223a36373130383836352c2264656e223a36347d2c226e223a5b382c385d2c2273756d223a5b342c345d2c227461696c223a7b227369676d61223a322e333039343031313131313731323630352c2268223a312e303030303030303134393031313631322c226c6f67223a307d7d7d0a
1	4	\\x7b226166746572223a2264303765343564623262333861633833313764326336633362616131396438373436373737363738323133626164633631313033393366326131376231356533222c226174223a22323030312d30392d30395430333a31303a30382e3030305a222c22656e64223a226f70657261746f72222c226b656570223a312c22636f696e73223a226161323166373339626134386164343134356435646639336262616639346238227d0a
\.


--
-- Data for Name: report; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.report (experiment, arm, number, data) FROM stdin;
\.


--
-- Data for Name: segment; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.segment (experiment, arm, start, stop, cut, settles, sum, more) FROM stdin;
\.


--
-- Data for Name: traffic; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.traffic (experiment, hour, decisions) FROM stdin;
1	277778	\\x1f1e
1	277779	\\x2800
\.


--
-- Data for Name: writer; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.writer ("only", term, holder, commits, now, secret) FROM stdin;
1	2		110	1000005008000	\\xf1131d0f027cf61ae2fc8607ca8d09ea2ea3948efc7f1efae598c6499880c80c
\.


--
-- Name: assignment_block_seq; Type: SEQUENCE SET; Schema: sotto; Owner: -
--

SELECT pg_catalog.setval('sotto.assignment_block_seq', 1, false);


--
-- Name: arm arm_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.arm
    ADD CONSTRAINT arm_pkey PRIMARY KEY (experiment, arm);


--
-- Name: assignment assignment_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.assignment
    ADD CONSTRAINT assignment_pkey PRIMARY KEY (block);


--
-- Name: audit audit_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (line);


--
-- Name: event event_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (experiment, start);


--
-- Name: experiment experiment_name_key; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.experiment
    ADD CONSTRAINT experiment_name_key UNIQUE (name);


--
-- Name: experiment experiment_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.experiment
    ADD CONSTRAINT experiment_pkey PRIMARY KEY (id);


--
-- Name: key key_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.key
    ADD CONSTRAINT key_pkey PRIMARY KEY (id);


--
-- Name: lease lease_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY ("only");


--
-- Name: redeemed redeemed_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.redeemed
    ADD CONSTRAINT redeemed_pkey PRIMARY KEY (experiment, arm, start, part);


--
-- Name: release release_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.release
    ADD CONSTRAINT release_pkey PRIMARY KEY (experiment, batch);


--
-- Name: report report_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.report
    ADD CONSTRAINT report_pkey PRIMARY KEY (experiment, arm, number);


--
-- Name: segment segment_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.segment
    ADD CONSTRAINT segment_pkey PRIMARY KEY (experiment, arm, start);


--
-- Name: traffic traffic_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.traffic
    ADD CONSTRAINT traffic_pkey PRIMARY KEY (experiment, hour);


--
-- Name: writer writer_pkey; Type: CONSTRAINT; Schema: sotto; Owner: -
--

ALTER TABLE ONLY sotto.writer
    ADD CONSTRAINT writer_pkey PRIMARY KEY ("only");


--
-- Name: assigned; Type: INDEX; Schema: sotto; Owner: -
--

CREATE INDEX assigned ON sotto.assignment USING btree (experiment);


--
-- PostgreSQL database dump complete
--



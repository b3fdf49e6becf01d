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
1	0	30	50	0	f	\\x00000000000000009bf916223f0fe0382559453adba09774
1	1	20	35	10	f	\\x00000000000000009bf916223f0fe0382559453adba09774
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
3	\\x7b2274696d65223a22323030312d30392d30395430313a34373a35355a222c226279223a227468652070726f6772616d222c22646964223a2273746f70222c226578706572696d656e74223a2273686f70222c2277697468223a22626c7565227d0a
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
1	shop	\\x7b226465636c61726174696f6e223a7b226e616d65223a2273686f70222c2261726d73223a5b7b226e616d65223a22726564222c2276616c7565223a6e756c6c7d2c7b226e616d65223a22626c7565222c2276616c7565223a6e756c6c7d5d2c22706f6c696379223a7b22706f6c696379223a2264702d6b6c7563622d6a222c226669727374223a32307d2c22627564676574223a7b22657073696c6f6e223a317d2c22756e6974223a7b226f66223a227669736974227d2c22726577617264223a7b2272616e6765223a5b302c315d2c2264656661756c74223a302e32357d2c2277696e646f77223a22316d3073222c22666c6f6f72223a302c22737469636b79223a66616c73652c227075626c6963223a66616c73652c227472757374223a226c6f63616c222c227265706f72745f6166746572223a22323073227d2c227374617465223a2273746f70706564222c2263726561746564223a313030303030303030303030302c226b656570223a312c22656e646564223a313030303030303037353030302c22776879223a226f70657261746f72222c226b6579223a5b3134392c3232342c37302c3234312c3134302c3136302c3132332c3131362c34312c33362c39322c37302c3138322c3136312c3235352c36315d2c22636f696e73223a5b3139302c3130302c3137302c3230322c3230332c3137312c33342c34322c34302c3230382c3138322c32302c34362c3137392c3133332c31355d7d	\\x7b22746970223a2238636339663736613632386334656130323839306562626537633866636539363131303565393130363736326535663162393333626639366537636562326262227d
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
1	1936684148	5		3722	2026-11-26 15:04:47.659317+00	7712496320617876991/1/16387	0
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
1	0	\\x7b226174223a22323030312d30392d30395430313a34363a34302e3030305a222c226c697665223a312c2270726f6772616d223a2228646576656c29222c226465636c61726174696f6e223a7b226e616d65223a2273686f70222c2261726d73223a5b7b226e616d65223a22726564222c2276616c7565223a6e756c6c7d2c7b226e616d65223a22626c7565222c2276616c7565223a6e756c6c7d5d2c22706f6c696379223a7b22706f6c696379223a2264702d6b6c7563622d6a222c226669727374223a32307d2c22627564676574223a7b22657073696c6f6e223a317d2c22756e6974223a7b226f66223a227669736974227d2c22726577617264223a7b2272616e6765223a5b302c315d2c2264656661756c74223a302e32357d2c2277696e646f77223a22316d3073222c22666c6f6f72223a302c22737469636b79223a66616c73652c227075626c6963223a66616c73652c227472757374223a226c6f63616c222c227265706f72745f6166746572223a22323073227d2c22627564676574223a7b22657073696c6f6e223a317d2c22636f696e73223a2233313639303966376135316166373365373131646135653736323637626538303035393262343034333836363933313065333763653933373764363438306638227d0a
1	1	\\x7b226166746572223a2237393838376339663462393534663862336565633965326137346233393965303263616137393832303635383230636632323362633533303939373937623362222c226174223a22323030312d30392d30395430313a34373a35312e3030305a222c22706c617973223a5b7b2261726d223a302c22726f756e6473223a32302c2272656c65617365223a747275657d2c7b2261726d223a312c22726f756e6473223a32302c2272656c65617365223a747275657d5d2c2272656c65617365223a7b22736c6f7473223a5b302c315d2c226d656368616e69736d223a7b226d656368616e69736d223a2261676772656761746564222c227472757374223a226c6f63616c222c226e6f697365223a226c61706c616365222c2267223a313034383537362c227573657273223a312c22696e7669746564223a33322c226d6f64756c7573223a333035373131353332392c22746175223a313531313738303434382c226e756d223a36373130383836352c2264656e223a36347d2c226e223a5b32302c32305d2c2273756d223a5b312e373530303631393838383330353636342c312e353030303636373537323032313438345d2c227461696c223a7b227369676d61223a362e3332343535353431343537393937382c2268223a312e303030303030303134393031313631322c226c6f67223a307d7d7d0a
1	2	\\x7b226166746572223a2236643563303561613039616237643238623064653134366563623663663364373336323239333633373761393738393233396466343362386233393035353366222c226174223a22323030312d30392d30395430313a34373a35332e3030305a222c22706c617973223a5b7b2261726d223a302c22726f756e6473223a31302c2272656c65617365223a747275657d5d2c2272656c65617365223a7b22736c6f7473223a5b325d2c226d656368616e69736d223a7b226d656368616e69736d223a2261676772656761746564222c227472757374223a226c6f63616c222c226e6f697365223a226c61706c616365222c2267223a313034383537362c227573657273223a312c22696e7669746564223a31362c226d6f64756c7573223a313532383535373636352c22746175223a3735353839303232342c226e756d223a36373130383836352c2264656e223a36347d2c226e223a5b31305d2c2273756d223a5b302e373530303333333738363031303734325d2c227461696c223a7b227369676d61223a342e343732313336303231363339353938342c2268223a312e303030303030303134393031313631322c226c6f67223a307d7d7d0a
1	3	\\x7b226166746572223a2237363566643538623633313534343231633466353031383933626161383731313364353730653831383762313039303763386339633536353461336539333262222c226174223a22323030312d30392d30395430313a34373a35352e3030305a222c22656e64223a226f70657261746f72222c226b656570223a312c22636f696e73223a226265363461616361636261623232326132386430623631343265623338353066227d0a
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
1	277777	\\x3223
\.


--
-- Data for Name: writer; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.writer ("only", term, holder, commits, now, secret) FROM stdin;
1	2		89	1000000075000	\\xcf293c1f9c6e10615b1ce1bc2424b36fd5982003ba5e996d273f1f73a8845968
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



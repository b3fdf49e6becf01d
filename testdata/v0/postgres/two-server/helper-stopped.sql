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
\.


--
-- Data for Name: assignment; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.assignment (block, experiment, units) FROM stdin;
1	1	\\x7b226261746368223a7b2241726d223a302c225374617274223a302c22456e64223a32307d2c22636f756e74223a31332c22636865636b73756d223a2277724d5248577937774f2b3843487937652b5134566964614e4f6f6b7a782f584735764e744c393668746b3d222c227368617265223a22415756514f65546c6d70513d222c226a6f6273223a5b7b226261746368223a7b2241726d223a302c225374617274223a302c22456e64223a32307d2c226964223a226579515257666d30494444454f495934494c63794f51222c2272657175657374223a223842477838494f4e694249305a6945735a4677756b4f7a6e75714b4e393769455754554756755231514b413d222c22726573706f6e7365223a2259362f5946486f374b326f4a534b4352646a482b4e7741414141414641674141414142722b4f586d595a4d4753496b537157623965703377414141414141554341414141414d37616f4d4176776d5a586d51746a4c4848496752344141414141425149414141414138472b665659756a6332343359516931344a344e6d5141414141414641674141414142494b726a53456571674a7469466c6572565377663441414141414155434141414141445056623575714e5267576150325170733238414f59414141414142514941414141414f7a3575357278336166774d79714d617972454177774141414141464167414141414173635349397931486f73337556384d682b5766557941414141414155434141414141493768493565415a4355366e7a744f425961736e4849414141414142514941414141413930356457506e6e354d74776871454e6d5165715041414141414146416741414141425446526568376b5835484671785a42656661454f6441414141414155434141414141454846557338536b32345a5051626167665a4e77724d414141414142514941414141416d32693352616d384e4c64582f6537376b4253637541414141414146416741414141413d227d5d7d
2	1	\\x7b226261746368223a7b2241726d223a312c225374617274223a302c22456e64223a32307d2c22636f756e74223a31342c22636865636b73756d223a222b334e49545365586e4b6d6751556c6a7065384c66474776376f4a4e737a41736e354a44543675357947633d222c227368617265223a2255493062734f4774486e6b3d222c226a6f6273223a5b7b226261746368223a7b2241726d223a312c225374617274223a302c22456e64223a32307d2c226964223a2276614c35306d6c634f68485564516a46644f55724467222c2272657175657374223a224f64597a72576d3276764e6339644a45794a59755044716f532f62673179624d536156536d5a744a4f44553d222c22726573706f6e7365223a224c764d6245775366536a44626e5237784c3364374c6741414141414641674141414141326478366a384362306d596571614c455155386676414141414141554341414141414b746563765a4f41334c524931534d6d656670644e5941414141414251494141414141444d2f45335431305355497157426445637639757a51414141414146416741414141424d51536e363568474d76722b6d694152415a7036614141414141415543414141414144596a2b6e4b687857503070723166732f39375869734141414141425149414141414173656858466f3853484d2b45454357426d346b634a514141414141464167414141414352726861386d4f65447948446d4377334a704c6d2f414141414141554341414141414f7551774e66637261423673556f6c414f6b4c787849414141414142514941414141414a79786e6f424a2f56565050794e525a58515542475141414141414641674141414144655a784d327152565746745347586837444755514c4141414141415543414141414144754755736c6c6d77723278675074756c774a7a5a7341414141414251494141414141784c2f3754516b3334736e69636f6c696c616647566741414141414641674141414144782b717746707a642f6c55304a422b503677666e4541414141414155434141414141413d3d227d5d7d
3	1	\\x7b226261746368223a7b2241726d223a302c225374617274223a32302c22456e64223a33307d2c22636f756e74223a372c22636865636b73756d223a224b773833537a4f6267514a754379524a3162324656534266634879485170347a517665317a65734b546a343d222c227368617265223a2267587268375569794f76343d222c226a6f6273223a5b7b226261746368223a7b2241726d223a302c225374617274223a32302c22456e64223a33307d2c226964223a22436650426866536b5633755337776d4b576a2d467967222c2272657175657374223a226362766d3777507657447371305074766661326d625145634e7a76627a7072775342644234715772746c493d222c22726573706f6e7365223a222f4966426c62532b2f6846506b534957776b414a505141414141414641674141414144722f4262416233644262425251776b456a75527538414141414141554341414141414a6f3171306669694b655a594a4b4b64386a5462316b414141414142514941414141412b517472626936585572344a707a4658596a485552414141414141464167414141414356416e5654473036652b7132564269324c43513938414141414141554341414141414d6d4e6a377a4e46635451753555336f3758414533514141414141425149414141414175357348654b76502b7345436a3669414c782b664d77414141414146416741414141413d227d5d7d
\.


--
-- Data for Name: audit; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.audit (line, text) FROM stdin;
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
1	gA6RgWrdCGQLUI3UvTKoxa_Y2ZtTL41VLDH0twNyINA	\\x7b7d	\N
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
1	1936684148	5		4076	2026-11-26 15:05:02.076893+00	7712496320617876991/1/16787	0
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
\.


--
-- Data for Name: writer; Type: TABLE DATA; Schema: sotto; Owner: -
--

COPY sotto.writer ("only", term, holder, commits, now, secret) FROM stdin;
1	4		7	0	\\x8f8f706a14efe5f4b7dddf3b2d0bf78a7ad88237e0b1e4b9b32f360c322f9230
\.


--
-- Name: assignment_block_seq; Type: SEQUENCE SET; Schema: sotto; Owner: -
--

SELECT pg_catalog.setval('sotto.assignment_block_seq', 3, true);


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



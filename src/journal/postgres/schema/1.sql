CREATE SEQUENCE session_sid;
CREATE TABLE node (
    id bigint PRIMARY KEY,
    url text,
    beat timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_draining boolean NOT NULL DEFAULT false,
    queries bigint NOT NULL DEFAULT 0,
    is_dead boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE TABLE session (
    sid bigint PRIMARY KEY DEFAULT nextval('session_sid'),
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner bigint,
    parent_sid bigint REFERENCES session,
    epoch bigint NOT NULL,
    last bigint NOT NULL,
    at bigint,
    recent bigint NOT NULL DEFAULT 0,
    busy smallint NOT NULL,
    sum bigint NOT NULL,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX session_owner ON session (owner, sid) WHERE owner IS NOT NULL;
CREATE INDEX session_child ON session (parent_sid) WHERE parent_sid IS NOT NULL;
CREATE INDEX session_recent ON session (tenant, recent);
CREATE TABLE record (
    sid bigint NOT NULL,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    sum bigint NOT NULL,
    PRIMARY KEY (sid, seq)
);
CREATE TABLE snapshot (
    sid bigint PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    sum bigint NOT NULL
);
CREATE TABLE thread (
    sid bigint NOT NULL,
    seq bigint NOT NULL,
    pos bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    words tsvector NOT NULL,
    PRIMARY KEY (sid, seq)
);
CREATE INDEX thread_words ON thread USING gin (words);
CREATE TABLE usage (
    payer text NOT NULL,
    day bigint NOT NULL,
    tokens bigint NOT NULL,
    nano_usd bigint NOT NULL,
    PRIMARY KEY (payer, day)
);
CREATE TABLE charge (
    payer text NOT NULL,
    day bigint NOT NULL,
    tokens bigint NOT NULL,
    nano_usd bigint NOT NULL
);
CREATE INDEX charge_day ON charge (payer, day);

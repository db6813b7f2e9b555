CREATE TABLE record (
    pos INTEGER PRIMARY KEY,
    sid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (sid, seq)
) STRICT;
CREATE TABLE session (
    sid INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    owner INTEGER,
    parent_sid INTEGER,
    epoch INTEGER NOT NULL,
    last INTEGER NOT NULL,
    at INTEGER,
    busy INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;
CREATE INDEX busy_session ON session (sid) WHERE busy = 1;
CREATE INDEX child_session ON session (parent_sid) WHERE parent_sid IS NOT NULL;
CREATE TABLE snapshot (
    sid INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE thread USING fts5(
    words, detail = none, columnsize = 0, tokenize = 'ascii'
);
INSERT INTO thread (thread, rank) VALUES ('secure-delete', 1);

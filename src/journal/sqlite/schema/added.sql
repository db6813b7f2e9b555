CREATE TABLE IF NOT EXISTS usage (
    payer TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (payer, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS busy_session_of_tenant ON session (tenant, sid) WHERE busy = 1;
CREATE INDEX IF NOT EXISTS session_by_time ON session (tenant, at);
INSERT INTO usage (payer, day, tokens, nano_usd)
SELECT 'stored/' || tenant, 0, sum(octet_length(body) + 1024), 0 FROM record JOIN session USING (sid)
WHERE NOT EXISTS (SELECT 1 FROM usage WHERE payer > 'stored/' AND payer < 'stored0')
GROUP BY tenant;
CREATE TABLE IF NOT EXISTS erasure (
    sid INTEGER PRIMARY KEY,
    -- As the session has it, even if it is damaged.
    tenant ANY
) STRICT;
CREATE TABLE IF NOT EXISTS in_use (
    one INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    schema INTEGER NOT NULL
) STRICT;

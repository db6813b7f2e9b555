CREATE TABLE IF NOT EXISTS usage (
    payer TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (payer, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS busy_session_of_tenant ON session (tenant, sid) WHERE busy = 1;
CREATE INDEX IF NOT EXISTS session_by_time ON session (tenant, at);

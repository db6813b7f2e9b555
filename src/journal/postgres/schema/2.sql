CREATE TABLE gone (sid bigint PRIMARY KEY, tenant text NOT NULL);
INSERT INTO charge (payer, day, tokens, nano_usd)
SELECT 'stored/' || tenant, 0, sum(octet_length(body) + 1024), 0 FROM record JOIN session USING (sid)
GROUP BY tenant;

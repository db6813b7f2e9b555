WITH c AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[], $5::bool[], $6::int8[])
        AS c (tenant, name, owner, node, if_empty, sum)
),
u AS (
    UPDATE session s SET owner = c.owner, epoch = s.epoch + 1 FROM c
    WHERE s.tenant = c.tenant AND s.name = c.name AND (s.last = 0 OR NOT c.if_empty)
        AND {FREE}
    RETURNING s.tenant, s.name, s.sid, s.epoch, s.last
),
i AS (
    INSERT INTO session (tenant, name, owner, epoch, last, busy, sum)
    SELECT tenant, name, owner, 1, 0, 0, sum FROM c
    WHERE NOT EXISTS (SELECT FROM session s WHERE s.tenant = c.tenant AND s.name = c.name)
    ON CONFLICT (tenant, name) DO NOTHING
    RETURNING tenant, name, sid, epoch, last
)
SELECT * FROM u UNION ALL SELECT * FROM i

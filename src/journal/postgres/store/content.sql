r AS (
    SELECT r.*, l.tenant FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::text[],
        $6::text[], $7::int8[], $8::text[]) AS r (sid, seq, epoch, at, kind, body, sum, words)
    JOIN l USING (sid)
),
i AS (
    INSERT INTO record (sid, seq, epoch, at, kind, body, sum)
    SELECT sid, seq, epoch, at, kind, body, sum FROM r
),
t AS (
    INSERT INTO thread (sid, seq, words)
    SELECT sid, seq, array_to_tsvector(string_to_array(rtrim(
        U&'\2016' || encode(convert_to(tenant, 'UTF8'), 'hex') || ' ' || words), ' '))
    FROM r WHERE words IS NOT NULL ORDER BY sid, seq
),
c AS (
    INSERT INTO charge (payer, day, tokens, nano_usd)
    SELECT payer, day, tokens, nano_usd FROM unnest($9::int8[], $10::text[], $11::int8[],
        $12::int8[], $13::int8[]) AS c (sid, payer, day, tokens, nano_usd)
    JOIN l USING (sid)
    UNION ALL
    SELECT 'stored/' || tenant, 0, sum(octet_length(body) + 1024), 0 FROM r GROUP BY tenant
)
SELECT sid FROM l

CREATE TABLE g (a BIGINT, b VARCHAR) WITH (connector='datagen', 'rows'='10', 'fields.a.kind'='sequence');
SELECT a, b FROM g WHERE a > 3;

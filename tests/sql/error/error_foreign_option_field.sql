CREATE TABLE g (n BIGINT) WITH (connector='datagen', fields.n.kind='sequence', fields.n.start='1');
-- way out:
CREATE TABLE g (n BIGINT) WITH (connector='datagen', rows=3, fields.n.kind='sequence', fields.n.min='1');
SELECT n FROM g;

CREATE TABLE p (a BIGINT) WITH (connector='print'); SELECT a FROM p;

SET 'table.exec.state.ttl' = '1 h';
-- way out:
SET state_ttl = '1h'; SELECT 1 AS a;

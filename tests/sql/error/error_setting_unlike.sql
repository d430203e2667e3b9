SET quantum = 5;
-- way out:
SET batch_rows = 5; SELECT 1 AS a;

SET batch_row = 1;
-- way out:
SET batch_rows = 1;

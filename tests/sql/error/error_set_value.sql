SET batch_rows = 0;

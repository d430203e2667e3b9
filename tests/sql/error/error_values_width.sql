VALUES (1, 2), (3);

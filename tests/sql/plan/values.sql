VALUES (1, 'a', NULL), (2.5, 'b', TRUE);

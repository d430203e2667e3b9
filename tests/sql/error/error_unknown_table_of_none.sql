SELECT 1 FROM nothing;

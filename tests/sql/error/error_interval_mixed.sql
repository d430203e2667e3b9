SELECT INTERVAL '1 month 2 days';

SELECT usr FORM orders;

SHOW tabels;

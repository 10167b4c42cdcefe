"""What the compiler made of a kernel: PTX, SASS and x86, counted and read for symptoms."""

"""Assembly of compiled kernels: PTX, SASS and x86, counted and searched for symptoms."""

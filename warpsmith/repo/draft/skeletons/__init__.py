"""Scripts that `warpsmith repo init` copies into a repository; they need nothing but its own packages."""

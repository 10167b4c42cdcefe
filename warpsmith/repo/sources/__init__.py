"""Sources of a repository: its files, what they import or include, and how they are built; found by reading."""

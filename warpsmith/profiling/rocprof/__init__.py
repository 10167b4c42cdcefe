"""Reports of AMD rocprofv3."""

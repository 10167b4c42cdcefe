"""Files of AMD rocprofv3."""

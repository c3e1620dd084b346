// placeholder, replaced by the first slice of this target

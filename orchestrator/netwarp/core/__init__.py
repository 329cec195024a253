"""Units, errors, frozen types, topology and metric names: what every other room shares."""

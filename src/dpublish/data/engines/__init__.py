"""Where rows come from, and the engine that runs kernels over them."""

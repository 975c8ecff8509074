"""The inference engine; it runs headless and never imports Qt."""

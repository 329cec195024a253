"""Line figures."""

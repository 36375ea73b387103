"""Where state comes from: the API server or the embedded cluster, behind one door."""

"""Files in object stores and on web servers, found and read by blocks through fsspec."""

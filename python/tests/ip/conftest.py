from simulated_boards import bench, published

__all__ = ["bench", "published"]

"""Background images (grey values or RGB colours) that are shown under a segmentation."""

from dataclasses import dataclass, replace

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Array, reordered
from probdice.errors import FormatError, GeometryError, InputError, Option
from probdice.files.interpretation import scaled_values, without_single_region
from probdice.files.model import Image, Source
from probdice.files.raster import pixels, png_picture, sized_picture

__all__ = ["BackgroundImage", "background_image_of", "onto_grid", "read_photograph"]

JPEG_RATIO = 2048  # largest compression ratio of JPEG
GREY = ("1", "L", "I", "I;16", "I;16B", "F")  # Pillow modes with one value per pixel


@dataclass(frozen=True, eq=False)
class BackgroundImage:
    """An image to show under a segmentation.

    Attributes
    ----------
    array : array
        One grey value per pixel, or red, green and blue between 0 and 255 along the last axis.
    colour : bool
        Whether the last axis contains red, green and blue.
    geometry : Geometry or None
        Position of the image in space, if known.
    name : str
        Displayed name of the image.
    """

    array: Array
    colour: bool
    geometry: Geometry | None = None
    name: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        shape = tuple(self.array.shape)
        return shape[:-1] if self.colour else shape


def background_image_of(image: Image) -> BackgroundImage:
    """Convert the content of a file to a background image."""
    if image.assumed:  # without metadata, all axes of a background image are spatial
        image = replace(image, regions=None)
    image = without_single_region(image)
    if image.regions is not None:
        raise FormatError(
            f"contains {image.array.shape[image.regions]} values per voxel, expected one grey "
            f"value. To show one of the volumes, save it as a separate file."
        )
    array, geometry = scaled_values(image, None), None
    if image.affine is not None:
        geometry = Geometry(tuple(array.shape), image.affine)
    return BackgroundImage(array, colour=False, geometry=geometry)


def read_photograph(source: Source, *, png: bool) -> BackgroundImage:
    """Read grey values or colours from a JPEG or PNG file. Palette indices become colours."""
    from PIL.JpegImagePlugin import JpegImageFile

    opened = png_picture(source) if png else sized_picture(JpegImageFile, source, JPEG_RATIO)
    with opened as picture:
        grey = picture.mode in GREY
        return BackgroundImage(pixels(picture, "" if grey else "RGB"), colour=not grey)


def onto_grid(
    image: BackgroundImage,
    geometry: Geometry | None,
    shape: tuple[int, ...],
    *,
    tolerance: float,
    placed: bool,
) -> BackgroundImage:
    """Reorder the axes of a background image to match the grid of the segmentations.

    An error is raised if the grids cannot be aligned. With `placed`, an error is also raised if
    only the image or only the segmentations have a geometry. Otherwise, equal shapes
    are sufficient if the image or the segmentations have no geometry.
    """
    if placed and (image.geometry is None) != (geometry is None):
        problem = "the background image has no geometry, but the segmentations have one"
        if geometry is None:
            problem = "the segmentations have no geometry, but the background image has one"
        raise GeometryError(
            f"{problem}, so their positions cannot be compared. ",
            Option(
                "ignore_geometry",
                python="To show the background image in array order, pass it as an array",
                command="To show the background image in array order, use --ignore-geometry",
            ),
        )
    if image.geometry is not None and geometry is not None:
        order, flips, apart = image.geometry.steps_onto(geometry)
        if not apart <= tolerance:
            reason = image.geometry.obstacle(geometry, apart)
            raise GeometryError(
                f"the background image is not on the grid of the segmentations: {reason}. "
                f"Resample it onto that grid."
            )
        array = reordered(image.array, order, flips, 0)
        return replace(image, array=array, geometry=geometry)
    if image.shape != shape:
        raise InputError(
            f"the background image has shape {image.shape}, but the segmentations have shape "
            f"{shape}. Both must cover the same pixels."
        )
    return image

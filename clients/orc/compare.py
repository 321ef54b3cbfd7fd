"""Whether two columns hold the same values."""

import pyarrow as pa


def flat(column):
    """One array in a form that compares by bits."""
    kind = column.type
    if pa.types.is_nested(kind):
        return column.to_pylist()
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(kind):
        return array.cast(kind.value_type)
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp(kind.unit)).cast(pa.int64())
    if pa.types.is_float32(kind):
        return array.view(pa.int32())
    if pa.types.is_float64(kind):
        return array.view(pa.int64())
    return array


def check(place, expected, got):
    """Fails with the first row that differs."""
    assert len(expected) == len(got), f"{place}: {len(got)} rows, expected {len(expected)}"
    if pa.types.is_timestamp(expected.type):
        got = got.cast(expected.type)
    expected, got = flat(expected), flat(got)
    if isinstance(expected, list):
        # Names of items and kinds of lists differ between readers; values may not.
        same = expected == got
    else:
        if got.type != expected.type:
            got = got.cast(expected.type)
        same = expected.equals(got)
        if not same:
            expected, got = expected.to_pylist(), got.to_pylist()
    if not same:
        at = next(at for at, pair in enumerate(zip(expected, got)) if pair[0] != pair[1])
        raise AssertionError(f"{place}: row {at}: expected {expected[at]!r}, got {got[at]!r}")



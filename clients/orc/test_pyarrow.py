"""pyarrow (ORC C++) and stoa-orc agree, whoever wrote the file."""

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from compare import check
from tables import table

# What pyarrow refuses, and the rows that stoa-orc reads of it.
ONLY_OURS = {
    "TestOrcFile.testTimestamp": 12,
    "TestOrcFile.testWithoutCompressionBlockSize": 100,
    "zero": 0,
}
# What both refuse.
DAMAGED = {
    "missing_length_stream_in_string_dict",
    "negative_dict_entry_lengths",
    "orc_corrupt_zlib",
    "stripe_footer_bad_column_encodings",
}


def test_files_of_ours_are_read(written):
    for file in written:
        source = orc.ORCFile(file.path)
        # Writers that are not registered make these fail.
        assert source.writer and source.writer_version and source.software_version
        found = source.read()
        assert found.num_rows == file.table.num_rows, file.name
        for name in file.table.column_names:
            check(f"{file.name}, {name}", file.table[name], found[name])


def test_user_metadata_is_there(written):
    file = next(file for file in written if "metadata=owner:stoa" in file.options)
    assert orc.ORCFile(file.path).metadata[b"owner"] == b"stoa"


def test_stripes_and_columns_by_themselves(written):
    """Reading by stripe and column seeks; what is found is a slice of the table."""
    for file in written:
        source = orc.ORCFile(file.path)
        row = 0
        for stripe in range(source.nstripes):
            batch = source.read_stripe(stripe, columns=["int64", "string", "timestamp_us"])
            for name in batch.schema.names:
                part = file.table[name].slice(row, batch.num_rows)
                check(f"{file.name}, stripe {stripe}, {name}", part, batch.column(name))
            row += batch.num_rows
        assert row == file.table.num_rows, file.name


def test_our_reader_agrees_on_files_of_ours(written, to_arrow):
    tables, said = to_arrow([file.path for file in written], "ours")
    assert said == "" and len(tables) == len(written)
    for file in written:
        for name in file.table.column_names:
            if name != "union":
                check(f"{file.name}, {name}", file.table[name], tables[file.path][name])


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_files_of_pyarrow_are_read(compression, to_arrow, scratch):
    """ORC C++ writes; its chunks are not cut at row groups."""
    content = table(10_001, "some", without={"union", "string_view", "double_special", "instant_zone"})
    content = content.drop_columns(["string_dictionary"])
    path = scratch / f"pyarrow-{compression}.orc"
    orc.write_table(
        content,
        path,
        compression=compression,
        compression_block_size=65_536,
        dictionary_key_size_threshold=0.8,
        row_index_stride=1000,
        stripe_size=300_000,
    )
    tables, said = to_arrow([path], "pyarrow")
    assert said == ""
    for name in content.column_names:
        check(f"{compression}, {name}", content[name], tables[path][name])


def test_the_corpus_value_by_value(corpus, to_arrow, monkeypatch):
    if not corpus:
        pytest.skip("no ORC files here")
    monkeypatch.setenv("TZ", "UTC")
    tables, said = to_arrow(corpus, "corpus")
    compared = 0
    for path in corpus:
        if path.stem in DAMAGED:
            assert path not in tables and path.stem in said, path.stem
            with pytest.raises(Exception):
                orc.ORCFile(path).read()
            continue
        ours = tables[path]
        try:
            theirs = orc.ORCFile(path).read()
        except (pa.ArrowException, OSError) as error:
            assert ours.num_rows == ONLY_OURS.get(path.stem), f"{path.stem}: pyarrow: {error}"
            continue
        assert path.stem not in ONLY_OURS, f"pyarrow reads {path.stem} now"
        assert ours.column_names == theirs.column_names, path.stem
        for at, name in enumerate(theirs.column_names):
            check(f"{path.stem}, {name}", theirs.column(at), ours.column(at))
            compared += theirs.num_rows
    assert compared > 0
    print(f"{compared} values of {len(corpus)} files equal")

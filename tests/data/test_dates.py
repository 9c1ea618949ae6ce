"""Dates and times are not taken for observations unless they are named."""

import gzip

import pandas as pd
import pytest

import average_dice as ad
from average_dice.data.understood import notes_of
from average_dice.errors import DatasetError

LINES = ["patient,day,m_age,m_seen,m_born,dose,outcome"] + [
    f"{patient},{day},{40 + patient},2024-01-0{1 + day} 10:30:00,{day + 1}.{patient + 1}.1980,{dose},{day}"
    for patient in range(3)
    for day, dose in enumerate(("low", "high"))
]
COLUMNS = {"episode": "patient", "time": "day", "action": "dose", "reward": "outcome", "terminated": True}


@pytest.fixture(params=["csv", "csv.gz", "parquet"])
def path(request, tmp_path):
    found = tmp_path / f"visits.{request.param}"
    text = "\n".join(LINES) + "\n"
    if request.param == "csv":
        found.write_text(text)
    elif request.param == "csv.gz":
        found.write_bytes(gzip.compress(text.encode()))
    else:
        (tmp_path / "text.csv").write_text(text)
        pd.read_csv(tmp_path / "text.csv", parse_dates=["m_seen"]).to_parquet(found)
    return found


def test_they_are_not_suggested(path):
    with pytest.raises(DatasetError) as caught:
        ad.read_dataset(path)
    text = str(caught.value)
    assert "--observations m_age (in Python" in text
    assert "Left out: m_seen, m_born, with dates or times" in text


def test_a_pattern_leaves_them_out_and_says_so(path):
    log = ad.read_dataset(path, columns=COLUMNS, observations=["m_*"])
    assert log.names.observations == ("m_age",)
    (note,) = [one for one in notes_of(log.metadata) if "dates or times" in one]
    assert note.startswith("m_seen, m_born hold")


def test_a_data_frame_leaves_them_out_too():
    rows = pd.DataFrame([line.split(",") for line in LINES[1:]], columns=LINES[0].split(","))
    frame = rows.assign(m_seen=pd.to_datetime(rows["m_seen"]), m_age=40.0, outcome=1.0)
    log = ad.from_dataframe(frame, **COLUMNS, observations=["m_*"])
    assert log.names.observations == ("m_age",)


def test_one_that_is_named_is_refused(path):
    with pytest.raises(DatasetError, match="m_seen holds times"):
        ad.read_dataset(path, columns=COLUMNS, observations=["m_age", "m_seen"])


def test_a_pattern_with_dates_alone_is_refused(path):
    with pytest.raises(DatasetError, match="Name at least one other column"):
        ad.read_dataset(path, columns=COLUMNS, observations=["m_s*"])

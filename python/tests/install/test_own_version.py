"""The version of what is built, by real git repositories."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[3]


def git(folder, *arguments):
    author = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    done = subprocess.run(
        ["git", "-C", folder, *author, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path):
    """A folder that is released as 0.1.0 next, with nothing committed in it."""
    folder = tmp_path / "project"
    (folder / "setup").mkdir(parents=True)
    shutil.copy(ROOT / "setup/own_version.py", folder / "setup")
    (folder / "CMakeLists.txt").write_text("project(latenz VERSION 0.1.0 LANGUAGES CXX)\n")
    return folder


@pytest.fixture
def repository(project):
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    return project


def version(folder):
    done = subprocess.run(
        [sys.executable, folder / "setup/own_version.py"], capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else done


def test_a_tagged_commit_is_the_release(repository):
    git(repository, "tag", "v0.1.0")
    assert version(repository) == "0.1.0"


def test_other_commits_are_development_versions_in_their_order(repository):
    seen = [version(repository)]
    assert seen == [f"0.1.0.dev1+g{git(repository, 'rev-parse', '--short=12', 'HEAD')}"]
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    seen.append(version(repository))
    git(repository, "tag", "v0.1.0")
    seen.append(version(repository))
    git(repository, "commit", "-q", "--allow-empty", "-m", "third")
    seen.append(version(repository))
    cmake = repository / "CMakeLists.txt"
    cmake.write_text(cmake.read_text().replace("0.1.0", "0.2.0"))
    git(repository, "commit", "-q", "-a", "-m", "fourth")
    seen.append(version(repository))
    git(repository, "tag", "v0.2.0")
    seen.append(version(repository))
    assert seen[3].startswith("0.1.1.dev1+g")
    assert seen[4].startswith("0.2.0.dev2+g")
    assert seen[5] == "0.2.0"
    assert seen == sorted(seen, key=Version)


def test_changed_files_are_told_even_at_a_tag(repository):
    git(repository, "tag", "v0.1.0")
    with (repository / "CMakeLists.txt").open("a") as file:
        file.write("# changed\n")
    assert version(repository).startswith("0.1.1.dev0+g")
    assert version(repository).endswith(".dirty")


def test_a_tag_of_another_version_is_refused_in_one_line(repository):
    git(repository, "tag", "v0.3.0")
    refused = version(repository)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "own_version: the tag v0.3.0 is of another version than CMakeLists.txt: 0.1.0\n"
    )


def test_a_source_archive_has_its_own(project):
    (project / "PKG-INFO").write_text("Metadata-Version: 2.2\nName: latenz\nVersion: 0.1.0.dev7\n")
    assert version(project) == "0.1.0.dev7"


def test_without_git_it_is_no_release(project):
    assert version(project) == "0.1.0.dev0+unknown"


def test_the_history_around_somebodys_copy_is_not_ours(repository):
    copy = repository / "copy"
    shutil.copytree(repository, copy, ignore=shutil.ignore_patterns(".git", "copy"))
    assert version(copy) == "0.1.0.dev0+unknown"


def test_ours_is_the_version_of_the_changelog_that_comes_next():
    number = Version(version(ROOT)).base_version
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")
    ]
    assert headings[0].removeprefix("## ").startswith(number)

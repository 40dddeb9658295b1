# SPDX-License-Identifier: Apache-2.0
"""Writes everything that is made from a register map in SystemRDL."""

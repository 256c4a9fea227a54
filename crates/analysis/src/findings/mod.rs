//! Sentences of verdict with their evidence.

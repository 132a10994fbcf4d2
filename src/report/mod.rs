//! What a person or a script reads of a run, a comparison, the knobs and the profiles.

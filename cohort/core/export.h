// COHORT_EXPORT marks a class or a function of the public interface: the shared library shows it to other programs.
// Everything else is hidden, because Cohort is compiled with -fvisibility=hidden. A class that is thrown needs the mark
// so that a program can catch it by its type. `./dev lint` checks that public headers carry it.
#pragma once

#define COHORT_EXPORT [[gnu::visibility("default")]]

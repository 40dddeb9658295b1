-- SPDX-License-Identifier: Apache-2.0
-- Which values the conditions of concurrent assignments took: gcov counts a whole assignment as one.
-- For measure.py, which writes calls of `seen` into copies of the sources; not part of any design.

use std.textio.all;

package observed is

    -- The condition as it is; notes in observed.txt that condition number `place` took this value.
    impure function seen (place : natural; condition : boolean) return boolean;

end package observed;

package body observed is

    constant places_c : positive := 100000;

    type noted_t is array (0 to places_c - 1, boolean) of boolean;

    type notes_t is protected

        procedure add (
            place : natural;
            value : boolean
        );

    end protected notes_t;

    type notes_t is protected body

        variable noted : noted_t := (others => (others => false));

        procedure add (
            place : natural;
            value : boolean
        ) is
            file notes    : text;
            variable note : line;
        begin
            if not noted(place, value) then
                noted(place, value) := true;
                file_open(notes, "observed.txt", append_mode);
                write(note, integer'image(place) & " " & boolean'image(value));
                writeline(notes, note);
                file_close(notes);
            end if;
        end procedure add;

    end protected body notes_t;

    shared variable notes : notes_t;

    impure function seen (place : natural; condition : boolean) return boolean is
    begin
        notes.add(place, condition);
        return condition;
    end function seen;

end package body observed;

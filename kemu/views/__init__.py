"""Drawing: each function makes text of a reading, and knows nothing but the reading.

    from kemu.views.style import PLAIN, style_for        style = style_for(encoding, colour=..., width=80)
    from kemu.views.terminal import render               render(reading, style) -> str      any reading, for people
    from kemu.views.procfs import render                 render(reading) -> str             the kernel's text of /proc/PID/...
    from kemu.views.json import to_data                  to_data(reading) -> JSON values    any reading, for programs
    from kemu.views.pictures.draw import dot, svg       dot(picture) -> str, svg(reading) -> str       pictures, for slides

``terminal.render`` finds the renderer by the type of the reading; each is a function
``NAME(reading, style) -> str`` without a newline at the end:

    tasks         process_list  task_tree  task  registers  outcome  access
    spaces        address_space  mm  vma_detail  smaps  smaps_rollup  status  stat  statm  pagemap  layout
    tables        translation  picture(translation, style)  two_walks(translation, translation, style)  page_tables  dump  tlb
    memory        frame  rmap  memory_map  free
    moments       event  events  calls  difference  change  moment  text  value
    graph         picture: one of the kinds in graph_walk, graph_tables, graph_sharing, graph_spaces, graph_ram, graph_plot

``procfs.render`` takes AddressSpace (maps), Smaps, SmapsRollup, StatusReading, StatReading,
StatmReading.
"""

"""Drawing: each function turns a reading into text, and uses nothing but the reading.

    style.style_for(encoding, colour=..., width=80) -> Style
    terminal.render(reading, style) -> str       any reading, for people
    procfs.render(reading) -> str                the kernel's text of /proc/PID/...
    json.to_data(reading) -> JSON values         any reading, for programs
    pictures.draw.dot(picture) -> str            pictures, for slides
    pictures.draw.svg(reading) -> str

``terminal.render`` finds the renderer by the type of the reading; each is a function
``NAME(reading, style) -> str`` without a newline at the end:

    tasks    process_list  task_tree  task  registers  outcome  access
    spaces   address_space  mm  vma_detail  smaps  smaps_rollup  status  stat  statm  pagemap
             layout
    tables   translation  picture(translation, style)  page_tables  dump  tlb
    memory   frame  rmap  memory_map  free
    moments  event  events  calls  difference  change  moment  text  value
    pictures/draw  picture: one of the kinds in walk, tables, sharing, spaces, ram, plot

``procfs.render`` takes AddressSpace (maps), Smaps, SmapsRollup, StatusReading, StatReading,
StatmReading.
"""

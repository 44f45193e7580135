// Written by tests/page_schema.py from src/piaget/report/page_data.py.
interface CellData {
  text: string;
  value: number | null;
}
interface StreamData {
  name: string;
  metric: string;
  unit: string;
  digits: number;
  higher_is_better: boolean;
}
interface MethodData {
  name: string;
  algorithm: string;
  label: string;
}
interface ScoreData {
  name: string;
  digits: number;
  higher_is_better: boolean;
}
interface FurtherData {
  tasks: (number)[];
  first: (number | null)[];
  final: (number | null)[];
}
interface CandidateData {
  task: number;
  with_it: number;
  without: number;
  gain: number | null;
  kept: boolean;
}
interface RunData {
  stream: number;
  method: number;
  seed: number;
  status: string;
  counted: boolean;
  folder: string;
  link: string | null;
  command: string;
  reference: number | null;
  configuration: Record<string, any>;
  time: CellData;
  steps: CellData;
  memory: CellData;
  components: number | null;
  tasks: (string)[];
  first: (number | null)[];
  final: (number | null)[];
  ratio: (number | null)[];
  further: Record<string, FurtherData>;
  majority: (number | null)[];
  after: ((number | null)[])[];
  structures: (((number)[])[])[];
  uses: ((number)[])[];
  births: (number)[];
  threshold: number | null;
  candidates: (CandidateData)[];
  reused: ((boolean)[])[];
}
interface CurveData {
  stream: number;
  method: number;
  seeds: number;
  epochs: (number)[];
  starts: (number)[];
  scores: ((number | null)[])[];
}
interface PairData {
  stream: number;
  method: number;
  other: number;
  seeds: number;
  p: number;
  significant: boolean;
}
interface TableData {
  id: string;
  title: string;
  caption: string;
  columns: (string)[];
  rows: ((string | CellData)[])[];
  best: ([number, number])[];
  stream: (number | null)[];
  method: (number | null)[];
}
interface ExplorerTaskData {
  name: string;
  weights: ((number)[])[];
  usable: number;
  score: number | null;
  scores: (((number | null)[])[])[] | null;
  truth: string | null;
}
interface NetworkData {
  width: number;
  side: [number, number];
  numbers: string;
}
interface ExplorerData {
  run: number;
  depth: number;
  components: number;
  shared: boolean;
  intensities: (number)[];
  tasks: (ExplorerTaskData)[];
  network: NetworkData | null;
}
interface ReportData {
  title: string;
  date: string;
  version: string;
  command: string;
  notes: (string)[];
  total_time: string;
  most_memory: string;
  streams: (StreamData)[];
  methods: (MethodData)[];
  scores: (ScoreData)[];
  runs: (RunData)[];
  curves: (CurveData)[];
  pairs: (PairData)[];
  tables: (TableData)[];
  explorers: (ExplorerData)[];
  paper: ([number, number, number, number])[];
}

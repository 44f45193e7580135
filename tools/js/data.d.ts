// Written by tests/page_schema.py from src/piaget/report/page_data.py and table_data.py.
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
  words: string;
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
interface LifeData {
  born: number;
  left: number | null;
  into: number | null;
  component: number | null;
}
interface InferenceData {
  inferred: (number | null)[];
  in_tens: (number | null)[];
  none: (number | null)[];
  taken: ([number, number, number])[];
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
  lives: (LifeData)[];
  threshold: number | null;
  candidates: (CandidateData)[];
  reused: ((boolean)[])[];
  inference: InferenceData | null;
}
interface CurveData {
  stream: number;
  method: number;
  seeds: number;
  epochs: (number)[];
  starts: (number)[];
  scores: ((number | null)[])[];
}
interface AnswerData {
  question: string;
  tone: string;
  headline: string;
  basis: string;
  evidence: (string)[];
  links: ([string, string])[];
}
interface LookData {
  stream: number;
  answers: (AnswerData)[];
  limits: string;
}
interface AlertData {
  kind: string;
  text: string;
  stream: number;
}
interface VariationData {
  stream: number;
  method: number;
  reference: number;
  part: string;
  usual: string;
  other: string;
  seeds: number;
  difference: number;
  low: number;
  high: number;
  p: number;
  significant: boolean;
  components: number | null;
  parameters: number | null;
  time: number | null;
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
  alerts: (AlertData)[];
  overall: string;
  looks: (LookData)[];
  total_time: string;
  most_memory: string;
  streams: (StreamData)[];
  methods: (MethodData)[];
  scores: (ScoreData)[];
  runs: (RunData)[];
  curves: (CurveData)[];
  variations: (VariationData)[];
  tables: (TableData)[];
  explorers: (ExplorerData)[];
  paper: ([number, number, number, number])[];
}
interface MetricData {
  key: string;
  name: string;
  digits: number;
  higher_is_better: boolean;
  words: string;
  groups: number;
  best: string | null;
  verdict: string | null;
}
interface ModelData {
  key: string;
  name: string;
  means: Record<string, number | null>;
}
interface GroupScoreData {
  piaget: number | null;
  simple: number | null;
  majority: number | null;
  gain: number | null;
}
interface OwnGroupData {
  name: string;
  rows: number;
  tested: number | null;
  positives: number | null;
  scores: Record<string, GroupScoreData>;
}
interface ClassData {
  name: string;
  rows: number;
  answered: number;
  precision: number | null;
  recall: number | null;
  f1: number | null;
  auc: number | null;
  weight: number;
}
interface BinData {
  predicted: number;
  observed: number;
  rows: number;
  error: number;
}
interface CoverageData {
  level: number;
  observed: number;
}
interface DirectionData {
  share: number;
  words: (string)[];
}
interface MapData {
  groups: (string)[];
  places: ((number)[])[];
  near: ((string)[])[];
  directions: (DirectionData)[];
}
interface ColumnData {
  name: string;
  common: number;
  differs: number;
}
interface MovedData {
  name: string;
  moves: number;
}
interface ArrivalData {
  table: string;
  group: string;
  is_new: boolean;
  rows: number;
  scores: Record<string, number | null>;
  fit: string;
}
interface BendLinesData {
  subject: string;
  lines: ((number)[])[];
}
interface BendData {
  words: string;
  title: string;
  axis: string;
  drawn: string;
  places: (number)[];
  groups: (string)[];
  unlike: (number)[];
  curves: (BendLinesData)[];
  note: string;
}
interface OwnRunData {
  name: string;
  folder: string;
  command: string;
  predict: string;
  kind: string;
  target: string;
  group: string;
  positive: string;
  simplest: string;
  tested: number | null;
  means_over: string;
  facts: ([string, string])[];
  notes: (string)[];
  metrics: (MetricData)[];
  models: (ModelData)[];
  groups: (OwnGroupData)[];
  classes: (ClassData)[];
  bins: (BinData)[];
  calibration_error: number | null;
  coverage: (CoverageData)[];
  map: MapData | null;
  no_map: string;
  bends: (BendData)[];
  columns: (ColumnData)[];
  moved: (MovedData)[];
  unit: string;
  trees: boolean;
  arrivals: (ArrivalData)[];
}
interface OwnReportData {
  title: string;
  date: string;
  version: string;
  command: string;
  notes: (string)[];
  runs: (OwnRunData)[];
}

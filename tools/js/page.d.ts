// What view.js adds to the data.
interface RunData {
  taskIds: number[];
}

// Memory of the kernel that is used like a stack, for the many steps of reading or training on a batch.

import {newKernel, roundedUp} from "./tensor.js";

/** A matrix in an arena: its address in bytes, and the length of its rows, a multiple of 8 numbers.
 * @typedef {{at: number, width: number}} Matrix */

/** Bytes by which an arena grows. */
const CHUNK = 1 << 20;

export class Arena {
  constructor() {
    /** The functions of kernel.wat. @type {any} */
    this.kernel = newKernel();
    /** The address of the first free byte. */
    this.top = 0;
    this.numbers = new Float32Array(this.kernel.memory.buffer);
    /** The address of zeros: a row to start sums from. */
    this.zeros = this.take(ZEROS);
  }

  /** Reserve this many uninitialised numbers, and return their address. @param {number} size @returns {number} */
  take(size) {
    const address = this.top;
    this.top += roundedUp(4 * size, 32);
    const missing = this.top - this.kernel.memory.buffer.byteLength;
    if (missing > 0) {
      this.kernel.memory.grow(roundedUp(missing, CHUNK) / 65_536);
      this.numbers = new Float32Array(this.kernel.memory.buffer);
    }
    return address;
  }

  /** Numbers, valid until the next `take`. @param {number} address @param {number} size @returns {Float32Array} */
  view(address, size) {
    return this.numbers.subarray(address >> 2, (address >> 2) + size);
  }

  /** Reserve zeros. @param {number} size @returns {number} */
  takeZeros(size) {
    const address = this.take(size);
    this.view(address, size).fill(0);
    return address;
  }

  /** A matrix with these rows and columns, whose rows are padded; 8 more rows may be read and written.
   * @param {number} rows @param {number} columns @returns {Matrix} */
  matrix(rows, columns) {
    const width = roundedUp(columns, 8);
    return {at: this.take((rows + 8) * width), width};
  }

  /** Free everything above the address `mark` except a matrix, which moves there.
   * @param {number} mark @param {Matrix} matrix @param {number} rows @returns {Matrix} */
  keepOnly(mark, matrix, rows) {
    this.top = mark;
    const at = this.take((rows + 8) * matrix.width);
    this.numbers.copyWithin(at >> 2, matrix.at >> 2, (matrix.at >> 2) + rows * matrix.width);
    return {at, width: matrix.width};
  }
}

/** Longest row of a bias or a sum. */
const ZEROS = 8192;

/** Arenas that are not in use: their memory is used again instead of being released. @type {Arena[]} */
const idle = [];

/** An arena that nothing else uses until it is given back. @returns {Arena} */
export function borrowArena() {
  return idle.pop() ?? new Arena();
}

/** @param {Arena} arena */
export function giveBack(arena) {
  arena.top = 4 * ZEROS;
  if (idle.length < 2) idle.push(arena);
}

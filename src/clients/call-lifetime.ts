/** Told when a call begins and when everything about it is booked, so that closing can wait. `enter` may throw. */
export interface CallLifetime {
  enter(): void;
  leave(): void;
}

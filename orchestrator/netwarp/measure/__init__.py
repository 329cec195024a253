"""A cell's captures -> its metrics, series and checks. The only room that knows both packets and cells."""

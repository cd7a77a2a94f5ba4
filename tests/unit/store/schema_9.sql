-- A database of schema 9: that of schema 8, and a label.
PRAGMA application_id = 1212763220;
PRAGMA user_version = 9;
BEGIN TRANSACTION;
CREATE TABLE campaigns (
  uuid TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  network TEXT NOT NULL,
  settings TEXT NOT NULL,
  created REAL NOT NULL
, budget TEXT, state TEXT NOT NULL DEFAULT 'created', detail TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '', finished REAL, spent_seconds REAL NOT NULL DEFAULT 0 CHECK (spent_seconds >= 0), fallback_first INTEGER NOT NULL DEFAULT 1) STRICT;
INSERT INTO "campaigns" VALUES('cccccccccccccccccccccccccccccccc','one','{"layers":[],"name":"one","others":{}}','{"board":"virtual:pynq"}',1.0,'{"trials":8}','created','','',NULL,0.0,1);
CREATE TABLE labels (
  uuid TEXT NOT NULL PRIMARY KEY,
  tags TEXT NOT NULL DEFAULT '[]',
  note TEXT NOT NULL DEFAULT '',
  archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))
) STRICT, WITHOUT ROWID;
INSERT INTO "labels" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','["ninth"]','of schema 9',0);
CREATE TABLE remeasurements (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  purpose TEXT NOT NULL CHECK (purpose IN ('drift', 'confirmation')),
  round INTEGER NOT NULL CHECK (round >= 0),
  ordinal INTEGER NOT NULL,
  microseconds REAL NOT NULL CHECK (microseconds > 0),
  board TEXT NOT NULL,
  PRIMARY KEY (run, purpose, round, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  -- what the run is: fixed when it is created, compared when it is resumed
  workload TEXT NOT NULL,
  workload_spec TEXT NOT NULL,
  board TEXT NOT NULL,
  parameters TEXT NOT NULL,
  isa TEXT NOT NULL,
  bitstream TEXT NOT NULL,
  clock_hz INTEGER NOT NULL CHECK (clock_hz > 0),
  tuner TEXT NOT NULL,
  tuner_options TEXT NOT NULL,
  seed INTEGER NOT NULL,
  checks TEXT NOT NULL,
  space_kind TEXT NOT NULL,
  orders INTEGER NOT NULL CHECK (orders > 0),
  space TEXT NOT NULL,
  space_size INTEGER NOT NULL,
  budget INTEGER NOT NULL,
  batch INTEGER NOT NULL CHECK (batch > 0),
  repeat INTEGER NOT NULL CHECK (repeat > 0),
  number INTEGER NOT NULL DEFAULT 1 CHECK (number > 0),
  limit_seconds REAL NOT NULL CHECK (limit_seconds > 0),
  output_elements INTEGER NOT NULL CHECK (output_elements > 0),
  macs INTEGER NOT NULL,
  bound_cycles INTEGER NOT NULL,
  -- how it went
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  failure TEXT NOT NULL,
  created REAL NOT NULL,
  finished REAL,
  versions TEXT NOT NULL,
  campaign TEXT REFERENCES campaigns (uuid),
  predicted_microseconds REAL
) STRICT;
INSERT INTO "runs" VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','resnet18.C5','{"in_channels":128,"kernel":[3,3],"kind":"conv2d"}','virtual:pynq','1x16_i8w8a32_15_15_18_17','A','0000000000000000000000000000000000000000000000000000000000000000',100000000,'random','{}',1,'compiler','autotvm',4,'tile_h=1,2 tile_w=1,2',2304,64,8,1,1,0.5,100352,115605504,451584,'created','','',1.0,NULL,'{"hilt":"0.1.0"}','cccccccccccccccccccccccccccccccc',NULL);
INSERT INTO "runs" VALUES(2,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','resnet18.C5','{"in_channels":128,"kernel":[3,3],"kind":"conv2d"}','virtual:pynq','1x16_i8w8a32_15_15_18_17','A','0000000000000000000000000000000000000000000000000000000000000000',100000000,'random','{}',1,'compiler','autotvm',4,'tile_h=1,2 tile_w=1,2',2304,64,8,1,1,0.5,100352,115605504,451584,'created','','',2.0,NULL,'{"hilt":"0.1.0"}',NULL,NULL);
CREATE TABLE slices (
  campaign TEXT NOT NULL REFERENCES campaigns (uuid) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  workload TEXT NOT NULL,
  trials INTEGER NOT NULL CHECK (trials > 0),
  expected_gain REAL NOT NULL,
  PRIMARY KEY (campaign, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE trials (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  -- facts about the configuration: the same whenever the same run is made on the same deterministic board
  "index" INTEGER NOT NULL,
  knobs TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome <> 'board_lost'),
  reason TEXT NOT NULL,
  cycles INTEGER,
  microseconds REAL,
  repeats TEXT NOT NULL,
  compared INTEGER,
  mismatched INTEGER,
  first INTEGER,
  largest_error INTEGER,
  output_elements INTEGER NOT NULL,
  -- circumstances: where and when
  board TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  seconds TEXT NOT NULL,
  recorded_at REAL NOT NULL,
  PRIMARY KEY (run, ordinal),
  CHECK (outcome <> 'ok' OR (microseconds IS NOT NULL AND microseconds > 0))
) STRICT, WITHOUT ROWID;
INSERT INTO "trials" VALUES(1,0,0,'{"tile_h":2,"tile_w":7}','ok','',700,7.0,'[7.0]',100352,0,NULL,0,100352,'',0,'{}',1.7953987975225367546e+09);
INSERT INTO "trials" VALUES(1,1,3,'{"tile_h":2,"tile_w":7}','ok','',600,6.0,'[6.0]',100352,0,NULL,0,100352,'',0,'{}',1.7953987975225367546e+09);
INSERT INTO "trials" VALUES(2,0,0,'{"tile_h":2,"tile_w":7}','ok','',900,9.0,'[9.0]',100352,0,NULL,0,100352,'',0,'{}',1.79539879753444194792e+09);
CREATE TABLE written_by (hilt TEXT NOT NULL) STRICT;
INSERT INTO "written_by" VALUES('0.1.0');
CREATE UNIQUE INDEX trials_once ON trials (run, "index");
CREATE INDEX trials_outcome ON trials (run, outcome, reason);
CREATE INDEX trials_verified ON trials (run, microseconds, ordinal) WHERE outcome = 'ok' AND mismatched = 0 AND compared = output_elements AND output_elements > 0;
CREATE INDEX runs_campaign ON runs (campaign) WHERE campaign IS NOT NULL;
COMMIT;
